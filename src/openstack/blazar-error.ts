/** Blazar does not answer, or not as Blazar does: a round that needed the answer changes nothing. */
export class BlazarError extends Error {
  override readonly name = 'BlazarError';
}
