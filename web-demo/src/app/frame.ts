/** What stands around every chapter: header, list of chapters, foot, live region. Built anew for each language. */
import { en, type Messages } from "../locales/en";
import { zh } from "../locales/zh";
import { segmented } from "../view/controls";
import { h } from "../view/dom";
import { CHAPTERS } from "./chapters";
import type { Lang, Theme } from "./state";

export const MESSAGES: Readonly<Record<Lang, Messages>> = { en, zh };

const NEXT_THEME: Readonly<Record<Theme, Theme>> = { auto: "light", light: "dark", dark: "auto" };
const THEME_ICON: Readonly<Record<Theme, string>> = { auto: "◐", light: "☀", dark: "☾" };

export interface FrameActions {
  readonly lang: Lang;
  readonly theme: Theme;
  chooseLang(lang: Lang): void;
  chooseTheme(theme: Theme): void;
  /** The address of a place in a chapter. */
  link(chapter: string, at?: string): string;
  follow(chapter: string, at?: string): void;
  skip(): void;
}

function languageSwitch(t: Messages, actions: FrameActions): HTMLElement {
  const language = segmented<Lang>(
    t.language,
    [
      { value: "en", label: "English" },
      { value: "zh", label: "中文" },
    ],
    actions.chooseLang,
    "language",
  );
  language.show(actions.lang);
  for (const label of language.element.querySelectorAll<HTMLElement>("[data-value]"))
    label.lang = label.dataset.value === "zh" ? "zh-CN" : "en";
  return language.element;
}

function themeButton(t: Messages, actions: FrameActions): HTMLElement {
  const button = h("button", { type: "button", class: "theme" });
  let theme = actions.theme;
  const show = () => {
    button.textContent = THEME_ICON[theme];
    button.title = t.theme[theme];
    button.setAttribute("aria-label", t.theme.label(t.theme[theme]));
  };
  show();
  button.addEventListener("click", () => {
    theme = NEXT_THEME[theme];
    show();
    actions.chooseTheme(theme);
  });
  return button;
}

/** A click without a modifier key is ours; with one the browser opens a tab or a window. */
function onPlainClick(link: HTMLAnchorElement, act: () => void): HTMLAnchorElement {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  return link;
}

function chapterList(t: Messages, actions: FrameActions): HTMLElement {
  const items = CHAPTERS.flatMap(({ id, places }) =>
    places.map(({ at, label }) => {
      const href = actions.link(id, at);
      const link = h("a", { href, "data-chapter": id, "data-at": at ?? "" }, label[actions.lang]);
      return h(
        "li",
        {},
        onPlainClick(link, () => actions.follow(id, at)),
      );
    }),
  );
  return h("nav", { class: "chapters", "aria-label": t.contents }, h("ol", {}, ...items));
}

export interface Frame {
  readonly top: readonly HTMLElement[];
  readonly foot: HTMLElement;
  /** Marks the place that is being read, and brings its links up to date. */
  mark(chapter: string, at: string): void;
}

export function buildFrame(actions: FrameActions): Frame {
  const t = MESSAGES[actions.lang];
  const first = CHAPTERS[0]?.id ?? "";
  const skip = h("a", { class: "skip", href: "#content" }, t.skip);
  const brand = h(
    "a",
    { class: "brand", href: actions.link(first) },
    h("span", { class: "mark", "aria-hidden": "true" }),
    t.brand,
  );
  const list = chapterList(t, actions);
  const links = [...list.querySelectorAll("a")];
  return {
    top: [
      onPlainClick(skip, actions.skip),
      h(
        "header",
        { class: "bar" },
        onPlainClick(brand, () => actions.follow(first)),
        list,
        languageSwitch(t, actions),
        themeButton(t, actions),
      ),
    ],
    foot: h("footer", { class: "foot" }),
    mark(chapter, at) {
      for (const link of links) {
        const { chapter: to = "", at: place = "" } = link.dataset;
        link.href = actions.link(to, place || undefined);
        const here = to === chapter && place === at;
        link.toggleAttribute("aria-current", here);
        if (!here) continue;
        link.setAttribute("aria-current", "page");
        // On a narrow screen the list is wider than the bar.
        list.scrollTo({ left: link.offsetLeft - (list.clientWidth - link.offsetWidth) / 2 });
      }
    },
  };
}
