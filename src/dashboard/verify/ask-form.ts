import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { csrfField } from '../session/csrf.ts'
import type { VerifyForm } from './verify-events.ts'

/** The form of the page: an address, and how to ask about it. */
export const optionsForm = (c: Context<Env>, { email, sandbox, again }: VerifyForm): Html => html`
  <form method="post" action="/verify" id="wish" data-verify>
    ${csrfField(c)}
    <div class="row">
      <p class="field">
        <label for="email">Email address</label>
        <input id="email" name="email" value="${email}" placeholder="bob@example.com" required autofocus
          inputmode="email" autocomplete="off" autocapitalize="none" spellcheck="false" />
      </p>
      <button class="primary">Verify</button>
    </div>
    ${tick('sandbox', sandbox, 'Sandbox: simulated answers, nobody is asked, costs nothing')}
    ${tick('again', again, 'Ask again even if the answer is known')}
    ${PREFIXES}
  </form>`

const tick = (name: string, checked: boolean, label: string) => html`
  <label class="tick"><input type="checkbox" id="${name}" name="${name}" ${checked ? html`checked` : NOTHING} /> ${label}</label>`

/** What the sandbox answers; its words are those of docs/api.md. */
const PREFIXES = html`
  <details>
    <summary>What the sandbox answers</summary>
    <p>The beginning of the address decides: <code>valid</code>, <code>invalid</code>, <code>risky</code>,
    <code>catchall</code>, <code>disposable</code>, <code>role</code>, <code>timeout</code>, <code>greylisted</code>,
    <code>mailbox-full</code>, <code>no-mx</code> and <code>typo</code> give what they say, as in
    <code>valid-bob@example.com</code>; <code>error-auth</code>, <code>error-ratelimit</code>,
    <code>error-timeout</code> and <code>error-server</code> give an error of the API. Any other address gets an answer
    that looks real, and always the same one.</p>
  </details>`

/** Asks about one address by one click. */
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
