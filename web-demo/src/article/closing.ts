import { h } from "../view/dom";
import type { Section } from "./app";
import { articleSection } from "./parts";

const CODE = `import { createLookback, masks } from "lookback";

const lb = await createLookback();
const { output, weights } = lb.attention(q, k, v, {
  heads: 2,
  causal: true,            // or mask: masks.causal(4)
  weights: "softmax",
});

const layer = lb.multiHeadAttention({ embedDim: 8, heads: 2 });
layer.load(stateDict);     // PyTorch's names
layer.forward(x, { causal: true });
layer.forward(x, { memory: otherSentence });`;

export const closing: Section = {
  id: "use",
  nav: (t) => t.closing.nav,
  mount({ t, lb }) {
    const c = t.closing;
    const fact = (name: string, label: string) => {
      const value = h("dd", { "data-fact": name });
      return { value, pair: h("div", {}, h("dt", {}, label), value) };
    };
    const variant = fact("variant", c.variant);
    const fused = fact("fused", c.fused);
    const memory = fact("memory", c.memory);
    const objects = fact("objects", c.objects);
    return {
      element: articleSection(
        "use",
        c.title,
        c.body,
        h("pre", { class: "code", tabindex: 0, "aria-label": c.title }, h("code", {}, CODE)),
        h("h3", {}, c.facts),
        h("dl", { class: "facts" }, variant.pair, fused.pair, memory.pair, objects.pair),
      ),
      figures: [],
      update() {
        const held = lb.memory();
        variant.value.textContent = lb.variant;
        // A line may end between its words, not at their hyphens.
        const multiply = lb.fused ? t.engine.fused : t.engine.unfused;
        fused.value.replaceChildren(
          ...multiply.split(" ").flatMap((word, at) => [at > 0 ? " " : "", h("span", { class: "nowrap" }, word)]),
        );
        memory.value.textContent = c.kib(Math.round(held.reserved / 1024).toLocaleString(t.htmlLang));
        objects.value.textContent = String(held.allocations);
      },
    };
  },
};
