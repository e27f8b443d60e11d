/** Values shared by configurations with the same settings: created for the first, closed with the last. */
export class CountedUses<Value> {
  readonly #close: (value: Value) => Promise<void>;
  readonly #used = new Map<string, { readonly value: Value; users: number }>();

  constructor(close: (value: Value) => Promise<void>) {
    this.#close = close;
  }

  get values(): Value[] {
    return [...this.#used.values()].map(({ value }) => value);
  }

  get(key: string): Value | undefined {
    return this.#used.get(key)?.value;
  }

  /** `release`: call it once, after the last request. */
  use(key: string, make: () => Value): { readonly value: Value; release(): Promise<void> } {
    const used = this.#used.get(key) ?? { value: make(), users: 0 };
    this.#used.set(key, used);
    used.users += 1;
    const release = async () => {
      used.users -= 1;
      if (used.users === 0) {
        this.#used.delete(key);
        await this.#close(used.value);
      }
    };
    return { value: used.value, release };
  }
}
