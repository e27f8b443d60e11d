/**
 * Hands a signal to some work that fires when the time is over, in seconds. Unlike `AbortSignal.timeout` it keeps the
 * process alive until then: what never answers must end in a refusal, not in a program that ends without a word. The
 * work itself decides what to do about the signal.
 */
export async function withinDeadline<Result>(
  seconds: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const timer = setTimeout(
    () => controller.abort(new Error(`no answer within ${seconds} s`)),
    seconds * 1000,
  );
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
  }
}
