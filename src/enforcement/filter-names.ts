/** The names of filters in `enabled_filters`: `MyFilter`, or `my-package#MyFilter` for one of an installed package. */

const CLASS_NAME = /^[A-Z][A-Za-z0-9]*Filter$/;
const PACKAGE_SPECIFIER =
  /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*#([A-Z][A-Za-z0-9]*Filter)$/;

export function isFilterClassName(name: string): boolean {
  return name !== 'BaseFilter' && CLASS_NAME.test(name);
}

export function isPackageFilter(name: string): boolean {
  return PACKAGE_SPECIFIER.exec(name)?.[1] !== undefined && !name.endsWith('#BaseFilter');
}

/** Whether a filter may have this name. Only such names are looked for on disk. */
export function isFilterName(name: string): boolean {
  return isFilterClassName(name) || isPackageFilter(name);
}

/** `my-package#MyFilter` → `MyFilter`; a class name is returned unchanged. */
export function filterClassName(name: string): string {
  return name.slice(name.indexOf('#') + 1);
}
