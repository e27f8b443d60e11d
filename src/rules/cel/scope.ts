/** The loop variables in sight, the innermost first. */
export interface Scope {
  readonly name: string;
  /** Where a frame keeps its value. */
  readonly slot: number;
  readonly outer: Scope | undefined;
}

/** Numbers the loop variables of one expression. */
export class Scopes {
  #count = 0;

  within(name: string, outer: Scope | undefined): Scope {
    this.#count += 1;
    return { name, slot: this.#count - 1, outer };
  }
}

export function slotOf(name: string, scope: Scope | undefined): number | undefined {
  for (let one = scope; one !== undefined; one = one.outer) {
    if (one.name === name) {
      return one.slot;
    }
  }
  return undefined;
}
