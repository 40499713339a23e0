import { englishProse } from "./english-prose.js";
import { tangVerse } from "./tang-verse.js";

/** The models that come with the package, by the names that commands know them by. */
export const BUNDLED = { "english-prose": englishProse, "tang-verse": tangVerse } as const;

export type BundledName = keyof typeof BUNDLED;

export const isBundled = (name: string): name is BundledName => Object.hasOwn(BUNDLED, name);
