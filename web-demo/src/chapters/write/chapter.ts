/** Write: a model continues the reader's text, and every token says where it came from. */
import "../../styles/figures.css";
import "../../styles/workshop.css";
import "./write.css";
import "./token.css";
import type { Chapter, ChapterContext, MountedChapter } from "../../app/chapter";
import type { Lang } from "../../app/state";
import { h } from "../../view/dom";
import { TerminalView } from "../../view/terminal";
import { BranchesView } from "./branches-view";
import { LookView, PromptView, RunView, SamplingView } from "./controls-view";
import { en, type WriteMessages } from "./locales/en";
import { zh } from "./locales/zh";
import { ModelView } from "./model-view";
import { BUNDLED_NAMES, MODEL_OF } from "./models";
import { commandOf, readSettings, writeSettings } from "./settings";
import { TextView } from "./text-view";
import { TokenView } from "./token-view";
import { Writer } from "./writer";

const MESSAGES: Readonly<Record<Lang, WriteMessages>> = { en, zh };

interface View {
  show(): void;
}

class WriteChapter implements MountedChapter {
  readonly #container: HTMLElement;
  readonly #context: ChapterContext;
  readonly #writer: Writer;
  #lang: Lang;
  #views: View[] = [];
  #frame = 0;
  #shared = "";

  constructor(container: HTMLElement, context: ChapterContext) {
    this.#container = container;
    this.#context = context;
    this.#lang = context.lang;
    const settings = readSettings(context.parameters, this.#t.prompt.text);
    this.#writer = new Writer(settings, () => this.#later());
    this.#build();
    const bundled = BUNDLED_NAMES.find((name) => name === settings.model) ?? MODEL_OF[context.lang];
    void this.#writer.load({ bundled });
  }

  get #t(): WriteMessages {
    return MESSAGES[this.#lang];
  }

  get #isBundled(): boolean {
    return BUNDLED_NAMES.includes(this.#writer.state.modelName);
  }

  unmount(): void {
    cancelAnimationFrame(this.#frame);
    this.#writer.end();
  }

  translate(lang: Lang): void {
    const { prompt } = this.#writer.state.settings;
    const isOurs = prompt === this.#t.prompt.text;
    this.#lang = lang;
    // Who has begun something keeps it; else the other language's model begins with its own words.
    if (isOurs && !this.#writer.tree.end && this.#writer.state.settings.model === null && this.#isBundled) {
      this.#writer.change({ prompt: this.#t.prompt.text });
      void this.#writer.load({ bundled: MODEL_OF[lang] });
    }
    this.#build();
  }

  #build(): void {
    const t = this.#t;
    const writer = this.#writer;
    const model = new ModelView(writer, t.model);
    const prompt = new PromptView(writer, t.prompt);
    const sampling = new SamplingView(writer, t.sampling);
    const look = new LookView(writer, t.look);
    const run = new RunView(writer, t, () => prompt.edit());
    const text = new TextView(writer, t.text, (words) => this.#context.announce(words));
    const token = new TokenView(writer, t);
    const branches = new BranchesView(writer, t.branches);
    const terminal = new TerminalView(t.terminal, () =>
      writer.state.modelName === "" ? null : commandOf(writer.state.modelName, writer.state.settings),
    );
    this.#views = [model, prompt, sampling, look, run, text, token, branches, terminal];
    this.#container.replaceChildren(
      h(
        "article",
        { class: "chapter workshop write", id: "chapter-write", "aria-labelledby": "write-title" },
        h(
          "header",
          { class: "lab-head" },
          h("p", { class: "eyebrow" }, t.eyebrow),
          h("h1", { id: "write-title", tabindex: -1 }, t.title),
          h("p", { class: "lead" }, t.lead),
        ),
        h("div", { class: "desk" }, h("div", { class: "beginning" }, prompt.element), model.element, sampling.element),
        run.element,
        h(
          "div",
          { class: "reading" },
          h("div", { class: "reading-text" }, look.element, text.element, branches.element),
          token.element,
        ),
        terminal.element,
      ),
    );
    this.#show();
  }

  /** Many tokens may come between two pictures of the screen. */
  #later(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#show());
  }

  #show(): void {
    for (const view of this.#views) view.show();
    const parameters = writeSettings(this.#writer.state.settings, this.#t.prompt.text);
    const text = String(parameters);
    if (text === this.#shared) return;
    this.#shared = text;
    this.#context.share(parameters);
  }
}

export const chapter: Chapter = {
  mount: (container, context) => new WriteChapter(container, context),
};
