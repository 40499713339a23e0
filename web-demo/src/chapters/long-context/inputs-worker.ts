/** Reads a text off the main thread: a few thousand words take longer than a frame. */
import { type Inputs, inputsOf, tokensOf } from "./inputs";

export interface InputsOrder {
  readonly text: string;
  readonly length: number;
}

/** The page's end of the line; the compiler knows this file as a page's. */
const line = self as unknown as {
  postMessage(message: Inputs, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<InputsOrder>) => void) | null;
};

line.onmessage = ({ data: { text, length } }) => {
  const inputs = inputsOf(tokensOf(text, length));
  line.postMessage(inputs, [inputs.q.buffer, inputs.k.buffer, inputs.v.buffer]);
};
