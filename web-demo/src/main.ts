import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/source-serif-4/wght.css";
import "@fontsource-variable/source-serif-4/wght-italic.css";
import "./styles/base.css";
import "./styles/article.css";
import "./styles/figures.css";
import "./styles/opening.css";
import "./styles/controls.css";
import { placeInAddress, readAddress, writeAddress } from "./app/address";
import { failurePanel } from "./app/failure";
import { MESSAGES, Page } from "./app/page";
import { Store } from "./app/state";
import { applyTheme, onSystemThemeChange, storedTheme, storeTheme } from "./app/theme";
import { startEngine } from "./engine/engine";
import { h } from "./view/dom";

const host = document.getElementById("page");
if (!host) throw new Error("the page has no #page");

const store = new Store({ ...readAddress(location.hash, navigator.languages), theme: storedTheme() });
applyTheme(store.state.theme);

async function start(root: HTMLElement): Promise<void> {
  const t = MESSAGES[store.state.lang];
  document.documentElement.lang = t.htmlLang;
  document.title = `${t.title} · ${t.brand}`;
  root.replaceChildren(h("p", { class: "loading", role: "status" }, t.loading));
  let lb: Awaited<ReturnType<typeof startEngine>>;
  try {
    lb = await startEngine();
  } catch (error) {
    root.replaceChildren(failurePanel(t, error, () => void start(root)));
    return;
  }
  show(root, new Page(root, lb, store));
}

function show(root: HTMLElement, page: Page): void {
  page.build();
  store.subscribe((state, previous) => {
    history.replaceState(null, "", writeAddress(state));
    if (state.theme !== previous.theme) {
      storeTheme(state.theme);
      applyTheme(state.theme);
      page.repaint();
    } else if (state.lang !== previous.lang) {
      const place = anchor(root);
      page.build();
      place();
      root.querySelector<HTMLElement>(".language input:checked")?.focus({ preventScroll: true });
    } else page.update();
  });
  onSystemThemeChange(() => {
    applyTheme(store.state.theme);
    page.repaint();
  });
  // Canvas text is measured and drawn with the page's fonts, so once more when they have come.
  document.fonts.addEventListener("loadingdone", () => page.repaint());
  window.addEventListener("hashchange", () => {
    const next = readAddress(location.hash, navigator.languages);
    const { theme, query, projection, crossCausal } = store.state;
    const at = placeInAddress(location.hash);
    store.set({ ...next, theme, query, projection, crossCausal });
    if (at) page.goTo(at, true);
  });
  const at = placeInAddress(location.hash);
  if (at) page.goTo(at, false);
  root.dataset.ready = "true";
}

/** Remembers which piece of the article is being read, and returns what brings it back to the same height on the screen. */
function anchor(root: HTMLElement): () => void {
  // Every language has the same pieces in the same order.
  const pieces = () => [...root.querySelectorAll("main > section > *, main > section figure")];
  const tops = pieces().map((piece) => piece.getBoundingClientRect().top);
  const index = tops.findLastIndex((top) => top <= window.innerHeight / 3);
  if (index < 0) return () => {};
  return () => {
    const top = pieces()[index]?.getBoundingClientRect().top ?? 0;
    window.scrollBy({ top: top - (tops[index] ?? 0), behavior: "instant" });
  };
}

void start(host);
