/**
 * Converts a picture of a page to a PNG of 256 colours: a third of the bytes without a visible difference,
 * since most pixels have one of the most frequent colours. Format: https://www.w3.org/TR/png/
 */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const MOST_COLOURS = 256;
/** Bytes of a pixel: red, green and blue, as in Chromium's screenshots. */
const RGB = 3;

/** Throws unless the PNG has eight bits each of red, green and blue. */
export function smallPng(png: Buffer): Buffer {
  const chunks = chunksOf(png);
  const header = Buffer.from(chunks.find(({ type }) => type === 'IHDR')?.data ?? []);
  if (header.subarray(8).toString('hex') !== '0802000000') {
    throw new Error('expected a PNG of eight bits each of red, green and blue');
  }
  const width = header.readUInt32BE(0);
  const packed = chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data);
  const pixels = pixelsOf(inflateSync(Buffer.concat(packed)), width);
  const palette = frequentColours(pixels);
  const indexed = Buffer.from(header);
  indexed[9] = 3;
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', indexed),
    chunk('PLTE', Buffer.concat(palette.map((colour) => bytesOf(colour)))),
    chunk('IDAT', deflateSync(indexes(pixels, width, palette), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

function chunksOf(png: Buffer): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({
      type: png.toString('latin1', at + 4, at + 8),
      data: png.subarray(at + 8, at + 8 + length),
    });
    at += 12 + length;
  }
  return chunks;
}

/** One number for each pixel, row by row, with the row filters undone. */
function pixelsOf(rows: Buffer, width: number): Uint32Array {
  const length = width * RGB;
  const height = rows.length / (length + 1);
  const pixels = new Uint32Array(width * height);
  let above = new Uint8Array(length);
  for (let y = 0; y < height; y += 1) {
    const start = y * (length + 1);
    const row = new Uint8Array(rows.subarray(start + 1, start + 1 + length));
    const filter = rows[start] ?? 0;
    for (let at = 0; at < length; at += 1) {
      const left = row[at - RGB] ?? 0;
      const aboveLeft = above[at - RGB] ?? 0;
      row[at] = (row[at] ?? 0) + foretold(filter, left, above[at] ?? 0, aboveLeft);
    }
    for (let x = 0; x < width; x += 1) {
      const [red = 0, green = 0, blue = 0] = row.subarray(x * RGB, (x + 1) * RGB);
      pixels[y * width + x] = (red << 16) | (green << 8) | blue;
    }
    above = row;
  }
  return pixels;
}

function foretold(filter: number, left: number, above: number, aboveLeft: number): number {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return above;
    case 3:
      return (left + above) >> 1;
    case 4: {
      const sum = left + above - aboveLeft;
      const a = Math.abs(sum - left);
      const b = Math.abs(sum - above);
      const c = Math.abs(sum - aboveLeft);
      return a <= b && a <= c ? left : b <= c ? above : aboveLeft;
    }
    default:
      return 0;
  }
}

function frequentColours(pixels: Uint32Array): number[] {
  const counts = new Map<number, number>();
  for (const colour of pixels) {
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .slice(0, MOST_COLOURS)
    .map(([colour]) => colour);
}

/** The nearest colour of each pixel; rows are not filtered, which is best for few colours. */
function indexes(pixels: Uint32Array, width: number, palette: readonly number[]): Buffer {
  const nearest = new Map(palette.map((colour, index) => [colour, index]));
  const rows = Buffer.alloc(pixels.length + pixels.length / width);
  pixels.forEach((colour, at) => {
    let index = nearest.get(colour);
    if (index === undefined) {
      const distances = palette.map((other) => distance(colour, other));
      index = distances.indexOf(Math.min(...distances));
      nearest.set(colour, index);
    }
    rows[at + Math.floor(at / width) + 1] = index;
  });
  return rows;
}

function distance(one: number, other: number): number {
  const a = bytesOf(one);
  const b = bytesOf(other);
  return a.reduce((sum, value, index) => sum + (value - (b[index] ?? 0)) ** 2, 0);
}

function bytesOf(colour: number): Buffer {
  return Buffer.from([colour >> 16, (colour >> 8) & 255, colour & 255]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  const checksum = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}
