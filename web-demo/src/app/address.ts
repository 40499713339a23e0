/** What is shown, in the address: #lang=zh&chapter=mask-lab&… with the chapter's own choices, so that a link shows what the sender saw. */
import type { Lang } from "./state";

export interface Address {
  readonly lang: Lang;
  readonly chapter: string;
  /** Everything else: it means what the chapter says it means. */
  readonly parameters: URLSearchParams;
}

/** The chapter of an address that names none. */
export const FIRST_CHAPTER = "article";

export function preferredLanguage(languages: readonly string[]): Lang {
  return languages[0]?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function readAddress(hash: string, languages: readonly string[]): Address {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const lang = parameters.get("lang");
  const chapter = parameters.get("chapter") ?? FIRST_CHAPTER;
  parameters.delete("lang");
  parameters.delete("chapter");
  return { lang: lang === "zh" || lang === "en" ? lang : preferredLanguage(languages), chapter, parameters };
}

export function writeAddress({ lang, chapter, parameters }: Address): string {
  const out = new URLSearchParams({ lang });
  if (chapter !== FIRST_CHAPTER) out.set("chapter", chapter);
  for (const [name, value] of parameters) out.append(name, value);
  return `#${out}`;
}
