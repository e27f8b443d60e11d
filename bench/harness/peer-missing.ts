/** A peer is not on this machine: its topic cannot be measured here. Nothing has failed. */
export class PeerMissing extends Error {
  override readonly name = 'PeerMissing';
}
