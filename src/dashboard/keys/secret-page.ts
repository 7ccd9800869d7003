import type { Context } from 'hono'
import { html } from 'hono/html'
import type { CreatedKey } from '../../client/types.ts'
import type { Env } from '../deps.ts'
import type { Html } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { copyable } from '../page/text.ts'

/** Shows the text of a key, in the answer to its form and nowhere else: in no address, cookie or line of the log. */
export function secretPage(
  c: Context<Env>,
  baseUrl: string,
  { key, title, note }: { key: CreatedKey['data']; title: string; note: Html | string },
): Promise<Response> {
  const body = html`
    <section class="card">
      <p>The key “${key.name}”, shown this once: ev keeps only its hash.</p>
      <p>${copyable(key.key)}</p>
      <p>${note}</p>
    </section>
    <p>Programs send it along with each request:</p>
    <pre>${exampleOf(baseUrl)}</pre>
    <p><a class="button primary" href="/keys">I have kept it</a></p>`
  return page(c, { title, body })
}

/** With the key in a variable, so that it does not stay in the history of a shell. */
const exampleOf = (baseUrl: string) => `curl ${baseUrl}/v1/verify/single \\
  -H "Authorization: Bearer $EV_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"email": "bob@example.com"}'`
