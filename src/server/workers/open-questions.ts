/** Questions over the channel between the primary and a worker that have no answer yet. Both sides ask. */
export class OpenQuestions {
  readonly #answers = new Map<number, (value: string | undefined) => void>();
  #asked = 0;

  /**
   * `send` sends the question under this id, and returns whether there is a channel. `undefined` = there is none, or no answer has come: within
   * `withinMs`, or before `end`.
   */
  ask(send: (id: number) => boolean, withinMs?: number): Promise<string | undefined> {
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve) => {
      const late =
        withinMs === undefined ? undefined : setTimeout(() => this.answered(id, undefined), withinMs);
      this.#answers.set(id, (value) => {
        clearTimeout(late);
        resolve(value);
      });
      if (!send(id)) {
        this.answered(id, undefined);
      }
    });
  }

  /** An answer has come. One that is too late is ignored. */
  answered(id: number, value: string | undefined): void {
    const answer = this.#answers.get(id);
    this.#answers.delete(id);
    answer?.(value);
  }

  /** No answer will come any more. */
  end(): void {
    for (const id of [...this.#answers.keys()]) {
      this.answered(id, undefined);
    }
  }
}
