/** A peer is not installed, so its topic cannot be measured. The message is for the page: no local paths. */
export class PeerMissing extends Error {
  override readonly name = 'PeerMissing';
}
