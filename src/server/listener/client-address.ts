/** The client of a request: the address of the connection or, for trusted proxies, the one they send. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net';

/** More than any chain of proxies has. Further addresses are ignored. */
const MAX_HOPS = 32;

/** Whether a text is an address or a network in CIDR notation; not `/0`, which would trust every client. */
export function isNetwork(text: string): boolean {
  const [, address = '', bits = '1'] = /^([^/%]+)(?:\/([1-9]\d{0,2}))?$/.exec(text) ?? [];
  const family = isIP(address);
  const isMapped = family === 6 && isIPv4(canonical(address));
  return family !== 0 && !isMapped && Number(bits) <= (family === 4 ? 32 : 128);
}

export class TrustedProxies {
  readonly #networks = new BlockList();

  /** `networks`: as `isNetwork` accepts them. */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = '', bits] = network.split('/');
      const family = familyOf(address);
      if (bits === undefined) {
        this.#networks.addAddress(address, family);
      } else {
        this.#networks.addSubnet(address, Number(bits), family);
      }
    }
  }

  /**
   * The rightmost address that is not a trusted proxy: clients can only write to the left of it. If a proxy
   * sends no address, or an invalid one, the address of the proxy.
   */
  clientOf({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string | undefined {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      return undefined;
    }
    const peer = canonical(remoteAddress);
    if (!this.#isTrusted(peer)) {
      return remoteAddress;
    }
    const { 'x-forwarded-for': list, forwarded } = headers;
    const found = [
      ...(list === undefined ? [] : [this.#walk(peer, listed(String(list)))]),
      ...(forwarded === undefined ? [] : [this.#walk(peer, forwardedFor(forwarded))]),
    ];
    // Most proxies set one of the headers and pass the other one on unchanged.
    const [first = peer, other = first] = found;
    return first === other ? first : peer;
  }

  /** `hops`: addresses, last proxy first; `undefined` = unknown. */
  #walk(peer: string, hops: readonly (string | undefined)[]): string {
    let nearest = peer;
    for (const hop of hops.slice(0, MAX_HOPS)) {
      if (hop === undefined) {
        break;
      }
      nearest = hop;
      if (!this.#isTrusted(hop)) {
        break;
      }
    }
    return nearest;
  }

  #isTrusted(address: string): boolean {
    return this.#networks.check(address, familyOf(address));
  }
}

/** The addresses of an `X-Forwarded-For`, from right to left. */
function listed(header: string): (string | undefined)[] {
  return header
    .split(',')
    .slice(-MAX_HOPS)
    .reverse()
    .map((part) => addressIn(part.trim()));
}

const PAIR = /[ \t]*([!#$%&'*+\-.^_`|~\w]+)=(?:([!#$%&'*+\-.^_`|~\w]+)|"((?:[^"\\]|\\.)*)")[ \t]*([;,]|$)/y;

/** The addresses of a `Forwarded` header (RFC 7239), from right to left. Empty if it is malformed. */
function forwardedFor(header: string): (string | undefined)[] {
  const hops: (string | undefined)[] = [];
  let pairs = new Map<string, string>();
  PAIR.lastIndex = 0;
  for (let isLast = false; !isLast; ) {
    const [pair, name = '', token, quoted = '', end] = PAIR.exec(header) ?? [];
    const key = name.toLowerCase();
    if (pair === undefined || pairs.has(key)) {
      return [];
    }
    pairs.set(key, token ?? quoted.replace(/\\(.)/g, '$1'));
    if (end !== ';') {
      hops.push(addressIn(pairs.get('for') ?? ''));
      pairs = new Map();
    }
    isLast = end === '';
  }
  return hops.reverse();
}

/** `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`; `undefined` = anything else. */
function addressIn(text: string): string | undefined {
  const [, v6] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? [];
  const [, v4] = /^([\d.]+):\d{1,5}$/.exec(text) ?? [];
  const address = v6 ?? v4 ?? text;
  const isRight = v6 === undefined ? isIP(address) !== 0 : isIPv6(address);
  return isRight && !address.includes('%') ? canonical(address) : undefined;
}

/** The canonical form: compressed, in lower case, IPv4 as such even if written as `::ffff:192.0.2.1`. */
function canonical(address: string): string {
  const { address: written } = new SocketAddress({ address, family: familyOf(address) });
  return written.replace(/^::ffff:(?=\d+\.)/, '');
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv4(address) ? 'ipv4' : 'ipv6';
}
