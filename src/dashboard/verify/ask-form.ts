import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { csrfField } from '../session/csrf.ts'
import type { VerifyForm } from './verify-events.ts'

/** Renders the form of the Verify page: address and options. */
export const optionsForm = (c: Context<Env>, { email, sandbox, again }: VerifyForm): Html => html`
  <form method="post" action="/verify" id="options" class="card" data-verify>
    ${csrfField(c)}
    <div class="row">
      <p class="field">
        <label for="email">Email address</label>
        <input id="email" name="email" value="${email}" placeholder="bob@example.com" required autofocus
          inputmode="email" autocomplete="off" autocapitalize="none" spellcheck="false" />
      </p>
      <button class="primary">Verify</button>
    </div>
    ${tick('sandbox', sandbox, 'Sandbox: simulated results, no mail server is contacted, no credits used')}
    ${tick('again', again, 'Ignore cached results')}
    ${PREFIXES}
  </form>`

const tick = (name: string, checked: boolean, label: string) => html`
  <label class="tick"><input type="checkbox" id="${name}" name="${name}" ${checked ? html`checked` : NOTHING} /> ${label}</label>`

/** Lists the sandbox prefixes, as docs/api.md does. */
const PREFIXES = html`
  <details>
    <summary>Sandbox results</summary>
    <p>The start of the address selects the result: <code>valid</code>, <code>invalid</code>, <code>risky</code>,
    <code>catchall</code>, <code>disposable</code>, <code>role</code>, <code>timeout</code>, <code>greylisted</code>,
    <code>mailbox-full</code>, <code>no-mx</code> and <code>typo</code>, as in
    <code>valid-bob@example.com</code>. <code>error-auth</code>, <code>error-ratelimit</code>,
    <code>error-timeout</code> and <code>error-server</code> return an API error. Any other address gets a realistic
    result, always the same one.</p>
  </details>`

/** Renders a button that verifies one address. */
export const verifyForm = (
  c: Context<Env>,
  { email, sandbox, again }: VerifyForm,
  label: string | Html,
): Html => html`
  <form method="post" action="/verify" data-verify>
    ${csrfField(c)}<input type="hidden" name="email" value="${email}" />
    ${sandbox ? hidden('sandbox') : NOTHING}${again ? hidden('again') : NOTHING}
    <button>${label}</button>
  </form>`

const hidden = (name: string) => html`<input type="hidden" name="${name}" value="on" />`
