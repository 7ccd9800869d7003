import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Key } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { empty } from '../page/notice.ts'
import { time } from '../page/text.ts'

/** The keys of an account; `now` is epoch ms. */
export const keyTable = (c: Context<Env>, keys: readonly Key[], now: number): Html => html`
  <div class="scroll"><table class="keys">
    <thead><tr>
      <th scope="col">Name and key</th><th scope="col">May</th><th scope="col">Only from</th><th scope="col">Limit</th>
      <th scope="col">Made</th><th scope="col">Last used</th><th scope="col">Expires</th>
    </tr></thead>
    <tbody>${keys.map(key => line(c, key, now))}</tbody>
  </table></div>
  ${keys.length > 1 ? NOTHING : TEACHING}`

const line = (c: Context<Env>, key: Key, now: number) => html`
  <tr>
    <th scope="row"><a href="/keys/${key.id}">${key.name}</a>
      ${key.id === c.get('user').keyId ? html`<small>this session’s</small>` : NOTHING}
      <br /><code>${key.prefix}…${key.hint}</code></th>
    <td>${key.scopes.includes('*') ? 'everything' : key.scopes.join(', ')}</td>
    <td>${onlyFrom(key)}</td>
    <td>${limitOf(key)}</td>
    <td>${time(key.created_at)}</td>
    <td>${time(key.last_used_at, 'never')}</td>
    <td>${time(key.expires_at, 'never')}
      ${isDone(key, now) ? html`<span class="badge is-bad">expired</span>` : NOTHING}</td>
  </tr>`

const limitOf = ({ rate_limit_per_minute: limit }: Key) =>
  limit === null ? 'the plan’s' : `${formatNumber(limit)} a minute`

export const isDone = ({ expires_at: at }: Key, now: number) => at !== null && Date.parse(at) <= now

/** More of them stand in the key itself. */
const ENTRIES_SHOWN_MAX = 3

function onlyFrom({ allowed_ips: ips, allowed_domains: sites }: Key): string {
  const all = [...ips, ...sites]
  if (all.length === 0) return 'anywhere'
  const left = all.length - ENTRIES_SHOWN_MAX
  const shown = all.slice(0, ENTRIES_SHOWN_MAX).join(', ')
  return left > 0 ? `${shown} and ${left} more` : shown
}

const TEACHING = empty({
  title: 'A key for each thing that asks',
  text: 'Give your shop, your script and your colleague a key each, which may do what it needs and no more: then you see who asks, and can revoke one without touching the others.',
  action: html`<a class="button primary" href="/keys/new">Make a key</a>`,
})
