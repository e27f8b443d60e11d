import fc from 'fast-check';

const SURROGATES = 0xd800;
const BEYOND = 0x800;

/** The samples of `unit: 'binary'`, which creates a table of all 1.1 million characters in each process. */
export const ANY_CHARACTER = fc.nat({ max: 0x10ffff - BEYOND }).map(
  (index) => String.fromCodePoint(index < SURROGATES ? index : index + BEYOND),
  (character) => {
    const [first = ''] = [...String(character)];
    const code = (first === character ? first.codePointAt(0) : undefined) ?? Number.NaN;
    return code < SURROGATES ? code : code - BEYOND;
  },
);
