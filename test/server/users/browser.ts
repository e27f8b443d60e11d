/** What a browser does between two sites: keeps the cookies of each, and follows where it is led. */

export interface Page {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
}

export class Browser {
  /** By origin, then by name. */
  readonly #cookies = new Map<string, Map<string, string>>();

  /** Follows redirects to `until`, or to their end. */
  async get(url: string, until = /^$/): Promise<Page> {
    return this.#follow(await this.#send(url, {}), until);
  }

  async post(url: string, fields: Record<string, string>, until = /^$/): Promise<Page> {
    return this.#follow(await this.#send(url, { method: 'POST', body: new URLSearchParams(fields) }), until);
  }

  cookieOf(url: string, name: string): string | undefined {
    return this.#cookies.get(new URL(url).origin)?.get(name);
  }

  setCookie(url: string, name: string, value: string): void {
    this.#jar(url).set(name, value);
  }

  async #follow(page: Page, until: RegExp): Promise<Page> {
    let at = page;
    for (let step = 0; step < 20; step += 1) {
      const to = at.headers.get('Location');
      if (to === null) {
        return at;
      }
      const url = new URL(to, at.url).href;
      if (until.test(url)) {
        return { ...at, url };
      }
      at = await this.#send(url, {});
    }
    throw new Error('too many redirects');
  }

  async #send(url: string, init: RequestInit): Promise<Page> {
    const jar = this.#jar(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: cookie === '' ? {} : { Cookie: cookie },
    });
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(set) ?? [];
      if (value === '') {
        jar.delete(name);
      } else {
        jar.set(name, value);
      }
    }
    return { url, status: answer.status, headers: answer.headers, html: await answer.text() };
  }

  #jar(url: string): Map<string, string> {
    const { origin } = new URL(url);
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar);
    return jar;
  }
}
