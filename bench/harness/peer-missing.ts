/** A peer is not on this machine: its topic cannot be measured here. Nothing has failed. The message is for the page: no paths of this machine. */
export class PeerMissing extends Error {
  override readonly name = 'PeerMissing';
}
