import { html } from 'hono/html'
import type { Limit } from '../../client/types.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatDuration, formatNumber } from '../../platform/format.ts'
import type { Html } from '../page/html.ts'
import { time } from '../page/text.ts'
import { meter } from './meter.ts'

/** All limits of how often may be asked, and how close they are; the credits have a card of their own. */
export function limitsCard(limits: readonly Limit[]): Html {
  const rates = limits.filter(({ name }) => name !== 'credits')
  return html`
    <section class="card">
      <h2>Limits</h2>
      ${rates.length === 0 ? OFF : html`${rates.map(one)} ${NOTE}`}
    </section>`
}

const OFF = html`<p>Whoever runs this service has switched them off.</p>`

const NOTE = html`<p><small>As they stand for the key of this session and the address that you come from. Who asks more
  often is refused with 429, and told when to come again.</small></p>`

const one = ({ text, limit, remaining, window_seconds, resets_at }: Limit): Html => html`
  <h3>${text}</h3>
  ${meter({ used: limit - remaining, limit })}
  <p>${formatNumber(remaining)} of ${formatNumber(limit)} in ${formatDuration(window_seconds * SECOND)} are left${
    remaining === limit ? '.' : html`, all again ${time(resets_at)}.`
  }</p>`
