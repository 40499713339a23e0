/** What the frame asks of a chapter, and what it gives it. A chapter is a module of its own that is loaded when it is first read. */
import type { Lookback } from "lookback";
import type { InBoth, Lang } from "./state";

export interface ChapterContext {
  readonly lang: Lang;
  /** The chapter's own part of the address, as it is now. */
  readonly parameters: URLSearchParams;
  /** Aborted when the chapter is left. */
  readonly signal: AbortSignal;
  /** The colours in use now. */
  theme(): "light" | "dark";
  /** The engine of the page's main thread: for small calls. It is started once, for all chapters. */
  engine(): Promise<Lookback>;
  /** Writes the chapter's own part of the address; 'push' makes a step to come back to. */
  share(parameters: URLSearchParams, how?: "replace" | "push"): void;
  /** An address of this chapter with these parameters. */
  link(parameters: URLSearchParams): string;
  /** Which of the chapter's places in the list of chapters is being read: the `at` of one of them. */
  place(at: string): void;
  /** Speaks through the page's live region, once the reader comes to rest. */
  announce(text: string): void;
  /** Shows that the chapter cannot go on, why, and a button that mounts it anew. */
  fail(error: unknown): void;
}

export interface MountedChapter {
  unmount(): void;
  /** Canvases are to be drawn again: other colours or fonts, the same numbers. */
  repaint?(): void;
  /** The reader went back or forth, or followed a link, within the chapter. Without it the chapter is mounted anew. */
  navigate?(parameters: URLSearchParams): void;
  /** Another language: what the reader has made stays. */
  translate(lang: Lang): void;
}

export interface Chapter {
  /** Fills the container, which is in the document and empty. What it throws is shown in the chapter's place. */
  mount(container: HTMLElement, context: ChapterContext): MountedChapter | Promise<MountedChapter>;
}

/** A chapter as the list knows it, before it is loaded. */
export interface ChapterEntry {
  readonly id: string;
  readonly title: InBoth;
  readonly description: InBoth;
  /** Its places in the list of chapters: without `at` the chapter as a whole. */
  readonly places: readonly { readonly at?: string; readonly label: InBoth }[];
  load(): Promise<{ readonly chapter: Chapter }>;
}
