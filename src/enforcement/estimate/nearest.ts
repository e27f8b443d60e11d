/** Finds the nearest step of a line that is allowed, with few questions. */

/** Leases that differ from the wish in one way, by 1, 2, 3, … steps. */
export interface Line {
  /** The last step. */
  readonly far: number;
  /** Steps at which something changes, such as the first day of a budget. Asked about first. */
  readonly guesses: readonly number[];
  /** Steps to ask about where no guess is right: what is allowed need not be allowed at every step beyond it. */
  readonly landmarks: readonly number[];
}

/**
 * The nearest step that is allowed, as far as the answers tell: between a step that is refused and one that is allowed, all steps are
 * taken to be refused up to some step and allowed from there on. The result itself was allowed. `undefined` = all that were asked about
 * are refused. The wish itself, step 0, is refused.
 */
export async function nearest(
  { far, guesses, landmarks }: Line,
  isAllowed: (step: number) => Promise<boolean>,
): Promise<number | undefined> {
  const refused = new Set([0]);
  const ask = async (step: number) => {
    if (refused.has(step)) {
      return false;
    }
    const allowed = await isAllowed(step);
    if (!allowed) {
      refused.add(step);
    }
    return allowed;
  };
  const onLine = (steps: readonly number[]) =>
    [...new Set(steps)].filter((step) => step >= 1 && step <= far).sort((a, b) => a - b);
  for (const step of [...onLine(guesses), ...onLine(landmarks)]) {
    if (!(await ask(step))) {
      continue;
    }
    let allowed = step;
    // Most guesses are exact.
    if (!(await ask(step - 1))) {
      return step;
    }
    allowed -= 1;
    let low = Math.max(...[...refused].filter((one) => one < allowed));
    while (allowed - low > 1) {
      const middle = Math.floor((low + allowed) / 2);
      if (await ask(middle)) {
        allowed = middle;
      } else {
        low = middle;
      }
    }
    return allowed;
  }
  return undefined;
}

/** A line from near to far, looked at more closely at both ends. */
export function spread(far: number): number[] {
  return [16, 8, 4, 2].flatMap((part) => [Math.ceil(far / part), far - Math.floor(far / part)]).concat(far);
}
