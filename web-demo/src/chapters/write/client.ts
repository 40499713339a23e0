/** The worker as the chapter sees it: questions have answers, orders have none, and news comes by itself. */
import type { FromWorker, Order, Questions } from "./protocol";

type News = Exclude<FromWorker, { type: "answer" | "failed" }>;

export class WriterClient {
  readonly #worker: Worker;
  readonly #open = new Map<number, { resolve: (answer: never) => void; reject: (error: Error) => void }>();
  #calls = 0;

  constructor(hear: (news: News) => void, failed: (message: string) => void) {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "write" });
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (data.type !== "answer" && data.type !== "failed") {
        hear(data);
        return;
      }
      const call = this.#open.get(data.call);
      this.#open.delete(data.call);
      if (data.type === "answer") call?.resolve(data.answer as never);
      else call?.reject(new Error(data.message));
    };
    this.#worker.onerror = (event) => {
      const message = event.message || "the worker could not be started";
      for (const { reject } of this.#open.values()) reject(new Error(message));
      this.#open.clear();
      failed(message);
    };
  }

  ask<Q extends keyof Questions>(question: Q, ask: Questions[Q]["ask"]): Promise<Questions[Q]["answer"]> {
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      this.#open.set(call, { resolve, reject });
      this.#worker.postMessage({ question, call, ask });
    });
  }

  order(order: Order): void {
    this.#worker.postMessage(order);
  }

  end(): void {
    this.#worker.terminate();
  }
}
