/** One line that says what computes: the variant, how it multiplies and adds, and its threads (if only one: why). */
import type { Lookback } from "lookback";
import type { Messages } from "../locales/en";
import { h } from "../view/dom";

export type Engine = Pick<Lookback, "variant" | "fused" | "threads" | "threadsReason">;

export function engineLine(t: Messages, engine: Engine): HTMLElement {
  const { variant, fused, threads, threadsReason } = engine;
  const words = [
    t.engine.variant(variant),
    fused ? t.engine.fused : t.engine.unfused,
    t.engine.threads(threads),
    ...(threadsReason ? [t.engine.reason(threadsReason)] : []),
  ];
  return h(
    "p",
    {
      class: "engine",
      title: t.engine.label,
      "data-variant": variant,
      "data-fused": String(fused),
      "data-threads": threads,
      "data-reason": threadsReason,
    },
    h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", {}, words.join(" · ")),
  );
}
