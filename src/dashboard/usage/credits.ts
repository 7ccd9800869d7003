import { html } from 'hono/html'
import type { Credits } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Html } from '../page/html.ts'
import { time } from '../page/text.ts'
import { meter } from './meter.ts'

/** What of the plan is used and left, and what costs anything at all. */
export const creditCard = (credits: Credits['data']): Html => html`
  <section class="card">
    <h2>Credits of today</h2>
    <dl class="figures">
      <div><dt>Used</dt><dd>${formatNumber(credits.credits_consumed)}</dd></div>
      <div><dt>Held for lists under way</dt><dd>${formatNumber(credits.credits_held)}</dd></div>
      <div><dt>Left</dt><dd>${credits.credits_balance === null ? 'without limit' : formatNumber(credits.credits_balance)}</dd></div>
    </dl>
    ${credits.credits_added === null ? unlimited(credits) : limited(credits, credits.credits_added)}
    <h3>What costs a credit</h3>
    <p>One credit for each definite answer that was found out anew. What could not be found out (unknown), what was known
      from before, malformed addresses, duplicates in a list, and the sandbox cost nothing. A list sets aside what it may
      need; what it does not use comes back when it ends.</p>
  </section>`

const unlimited = ({ plan }: Credits['data']): Html =>
  html`<p>The plan “${plan}” has no end to them.</p>`

const limited = (
  { plan, credits_consumed, credits_held, resets_at }: Credits['data'],
  added: number,
): Html => html`
  ${meter({ used: credits_consumed + credits_held, limit: added })}
  <p>The plan “${plan}” gives ${formatNumber(added)} a day. They are given anew ${time(resets_at)}.</p>`
