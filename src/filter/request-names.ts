/** The names that Keystone has for the ids of a request, as far as they are known. */
export interface RequestNames {
  readonly project?: (Named & { readonly tags: readonly string[] }) | undefined;
  readonly user?: Named | undefined;
}

export interface Named {
  readonly name: string;
  /** The name of its domain; empty if it is not known. */
  readonly domain: string;
}
