import type { Context } from 'hono'
import { html } from 'hono/html'
import type { CreatedKey } from '../../client/types.ts'
import type { Env } from '../deps.ts'
import type { Html } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { card } from '../page/parts.ts'
import { copyable } from '../page/text.ts'

/**
 * Shows the secret of a key once, in the response to its form; never in a URL, cookie or log line.
 */
export function secretPage(
  c: Context<Env>,
  baseUrl: string,
  { key, title, note }: { key: CreatedKey['data']; title: string; note: Html | string },
): Promise<Response> {
  const body = html`
    <section class="card">
      <p>Secret of the key “${key.name}”. It is not shown again: ev stores only its hash.</p>
      <p>${copyable(key.key)}</p>
      <p>${note}</p>
    </section>
    ${card({ title: 'Use the key', body: html`<p>Send it with each request:</p><pre>${exampleOf(baseUrl)}</pre>` })}
    <p><a class="button primary" href="/keys">I have saved it</a></p>`
  return page(c, { title, body, hasAlerts: false })
}

/** Reads the key from a variable, which keeps it out of the shell history. */
const exampleOf = (baseUrl: string) => `curl ${baseUrl}/v1/verify/single \\
  -H "Authorization: Bearer $EV_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"email": "bob@example.com"}'`
