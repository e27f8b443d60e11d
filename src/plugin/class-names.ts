/** What follows from the name of a class: its file, and the names of its options. */

/** `GPUQuotaFilter` → `gpu_quota`: the prefix of its options. */
export function optionPrefix(className: string): string {
  return words(className).slice(0, -1).join('_');
}

/** `GPUQuotaFilter` → `gpu-quota-filter`: the name of its file, without extension. */
export function classFileName(className: string): string {
  return words(className).join('-');
}

/**
 * The prefix of the options of a class that could not be loaded, from what names it: `my-package#MyPolicy`, `MyFilter`,
 * `./my-policy.js`, `pkg.MyPolicy`. Empty if it has none.
 */
export function prefixOfNamed(specifier: string): string {
  const [place = '', name = ''] = specifier.split('#');
  if (name !== '') {
    return optionPrefix(name);
  }
  const file = place.replace(/^.*[/\\]/, '').replace(/\.m?[jt]s$/, '');
  return file === place
    ? optionPrefix(place.slice(place.lastIndexOf('.') + 1))
    : file.split('-').slice(0, -1).join('_');
}

function words(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(' ');
}
