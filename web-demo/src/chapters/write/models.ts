/** Where models come from: the package, or files that the reader drops. */
import type { ModelSource } from "lookback/model";
import type { Lang } from "../../app/state";
import type { Source } from "./protocol";

/** Modules of the package, one for each model; a bundler follows them because they are written out. */
const BUNDLED: Readonly<Record<string, () => Promise<ModelSource>>> = {
  "english-prose": async () => (await import("lookback/models/english-prose")).englishProse,
  "tang-verse": async () => (await import("lookback/models/tang-verse")).tangVerse,
};

export const BUNDLED_NAMES: readonly string[] = Object.keys(BUNDLED);

/** The model that writes a language. */
export const MODEL_OF: Readonly<Record<Lang, string>> = { en: "english-prose", zh: "tang-verse" };

export async function openSource(source: Source): Promise<ModelSource> {
  if ("files" in source) return sourceOf(source.files);
  const open = BUNDLED[source.bundled];
  if (!open) throw new Error(`There is no model ${source.bundled}; there are: ${BUNDLED_NAMES.join(", ")}.`);
  return open();
}

/** llama2.c's two .bin files, of which the tokenizer is the smaller one, or the files of a folder of Hugging Face. */
export function sourceOf(files: readonly File[]): ModelSource {
  const pair = files.filter(({ name }) => name.endsWith(".bin")).sort((a, b) => a.size - b.size);
  const [tokenizer, weights] = pair;
  const isFolder = files.some(({ name }) => name === "config.json");
  return tokenizer && weights && pair.length === 2 && !isFolder ? { weights, tokenizer } : [...files];
}

/** The files of a drop, folders opened. */
export async function filesOf(items: DataTransferItemList): Promise<File[]> {
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map(filesIn))).flat();
}

async function filesIn(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isFile)
    return [await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const files: File[] = [];
  // A folder is told in portions; an empty one is the end.
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (entries.length === 0) return files;
    for (const one of entries) if (one.isFile) files.push(...(await filesIn(one)));
  }
}

/** What a command would call it. */
export function sourceName(source: Source): string {
  if ("bundled" in source) return source.bundled;
  const model = sourceOf(source.files);
  if (typeof model === "object" && "weights" in model)
    return `${(model.weights as File).name} --tokenizer ${(model.tokenizer as File).name}`;
  const folder = source.files[0]?.webkitRelativePath.split("/")[0];
  return folder ? `./${folder}` : ".";
}
