/** The article: masked attention and many heads, one page that is read from top to bottom. */
import type { Chapter } from "../app/chapter";
import "../styles/article.css";
import "../styles/figures.css";
import "../styles/opening.css";
import { readChoices, writeChoices } from "./address";
import { Page } from "./page";
import { inLanguage, Store } from "./state";

export const chapter: Chapter = {
  async mount(container, context) {
    const lb = await context.engine();
    const store = new Store(readChoices(context.parameters, context.lang));
    const page = new Page(container, lb, store, context);
    page.build();
    let share = true;
    store.subscribe((state) => {
      if (share) context.share(writeChoices(state));
      page.update();
    });
    const at = context.parameters.get("at");
    if (at) page.goTo(at, false);
    return {
      unmount: () => page.leave(),
      repaint: () => page.repaint(),
      navigate(parameters) {
        const { query, projection, crossCausal, lang } = store.state;
        // The address is the reader's own already.
        share = false;
        store.set({ ...readChoices(parameters, lang), query, projection, crossCausal });
        share = true;
        page.goTo(parameters.get("at") ?? "start", true);
      },
      translate(lang) {
        const place = anchor(container);
        store.set(inLanguage(store.state, lang));
        page.build();
        place();
      },
    };
  },
};

/** Remembers which piece of the article is being read, and returns what brings it back to the same height on the screen. */
function anchor(root: HTMLElement): () => void {
  // Every language has the same pieces in the same order.
  const pieces = () => [...root.querySelectorAll("#article > section > *, #article > section figure")];
  const tops = pieces().map((piece) => piece.getBoundingClientRect().top);
  const index = tops.findLastIndex((top) => top <= window.innerHeight / 3);
  if (index < 0) return () => {};
  return () => {
    const top = pieces()[index]?.getBoundingClientRect().top ?? 0;
    window.scrollBy({ top: top - (tops[index] ?? 0), behavior: "instant" });
  };
}
