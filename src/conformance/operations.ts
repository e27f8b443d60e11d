/** The operations of the protocol, and the flag that gives the URL of each. */
export const ENDPOINT_FLAGS = {
  create: '--create-endpoint',
  update: '--update-endpoint',
  end: '--end-endpoint',
  commitCreate: '--commit-create-endpoint',
  commitUpdate: '--commit-update-endpoint',
} as const;

export type Operation = keyof typeof ENDPOINT_FLAGS;

/** In the order in which they are tried. */
export const OPERATIONS = Object.keys(ENDPOINT_FLAGS) as Operation[];
