/** Which model writes: one of the package's, or the reader's own, dropped or picked. */
import { h } from "../../view/dom";
import { choice } from "../../view/fields";
import { formatCount, formatPercent } from "../../view/format";
import type { WriteMessages } from "./locales/en";
import { BUNDLED_NAMES, filesOf } from "./models";
import type { Writer } from "./writer";

export class ModelView {
  readonly element: HTMLElement;
  readonly #facts = h("p", { class: "model-facts", role: "status" });
  readonly #progress = h("progress", { max: 1 });
  readonly #error = h("div", { class: "refusal", role: "alert" });
  readonly #bundled;
  readonly #writer: Writer;
  readonly #t: WriteMessages["model"];

  constructor(writer: Writer, t: WriteMessages["model"]) {
    this.#writer = writer;
    this.#t = t;
    this.#bundled = choice<string>({ label: t.bundled }, (bundled) => {
      if (bundled === "") return this.show();
      writer.change({ model: bundled });
      void writer.load({ bundled });
    });
    this.#bundled.offer([{ value: "", label: t.own }, ...BUNDLED_NAMES.map((name) => ({ value: name, label: name }))]);
    this.#progress.setAttribute("aria-label", t.legend);
    this.element = h(
      "section",
      { class: "model-choice", "aria-label": t.legend },
      this.#bundled.element,
      this.#facts,
      this.#progress,
      h("details", { class: "own-model" }, h("summary", {}, t.own), this.#dropPlace()),
      this.#error,
    );
  }

  show(): void {
    const { model, phase, loaded, modelError, modelName } = this.#writer.state;
    const t = this.#t;
    const isLoading = phase === "loading";
    this.#progress.hidden = !isLoading;
    this.#progress.value = loaded;
    this.#facts.textContent = isLoading
      ? t.loading(formatPercent(loaded))
      : model
        ? t.facts(
            modelName.split(" ")[0] ?? "",
            formatCount(model.parameters),
            model.layers,
            model.heads,
            model.contextLength,
          )
        : t.none;
    if (model) this.#facts.dataset.variant = model.variant;
    this.#error.hidden = modelError === null;
    if (modelError !== null)
      this.#error.replaceChildren(h("p", {}, t.failed), h("code", { class: "engine-message", lang: "en" }, modelError));
    this.#bundled.show(BUNDLED_NAMES.includes(modelName) ? modelName : "");
  }

  #take(files: readonly File[]): void {
    if (files.length === 0) return;
    this.#writer.change({ model: null });
    void this.#writer.load({ files });
  }

  #dropPlace(): HTMLElement {
    const t = this.#t;
    const files = h("input", {
      type: "file",
      multiple: true,
      class: "visually-hidden",
      tabindex: -1,
      "aria-label": t.files,
    });
    const folder = h("input", {
      type: "file",
      webkitdirectory: true,
      class: "visually-hidden",
      tabindex: -1,
      "aria-label": t.folder,
    });
    for (const input of [files, folder])
      input.addEventListener("change", () => {
        this.#take([...(input.files ?? [])]);
        input.value = "";
      });
    const place = h(
      "div",
      { class: "drop-place" },
      h("p", { html: t.drop }),
      h(
        "p",
        { class: "drop-buttons" },
        h("button", { type: "button", class: "quiet", onclick: () => files.click() }, t.files),
        h("button", { type: "button", class: "quiet", onclick: () => folder.click() }, t.folder),
        files,
        folder,
      ),
      h("p", { class: "hint" }, t.local),
    );
    const over = (is: boolean) => place.classList.toggle("over", is);
    place.addEventListener("dragover", (event) => {
      event.preventDefault();
      over(true);
    });
    place.addEventListener("dragleave", () => over(false));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      if (event.dataTransfer) void filesOf(event.dataTransfer.items).then((dropped) => this.#take(dropped));
    });
    return place;
  }
}
