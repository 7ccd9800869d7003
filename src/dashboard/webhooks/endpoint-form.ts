import type { Context } from 'hono'
import { html } from 'hono/html'
import type { EventList } from '../../client/types.ts'
import type { Env } from '../deps.ts'
import { boxes, field, type SubmittedForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'

/** The values of the endpoint form. */
export type Draft = {
  readonly url: string
  readonly events: readonly string[]
  readonly description: string
  readonly active: boolean
  /** Custom headers to set, one on each line. */
  readonly headers: string
  /** Names of custom headers to remove. */
  readonly removed: readonly string[]
}

export const draftOf = ({ text, all }: SubmittedForm): Draft => ({
  url: text('url'),
  events: all('events'),
  description: text('description'),
  active: text('active') === 'true',
  headers: text('headers'),
  removed: all('removed'),
})

/** Converts form values to a request body. */
export const bodyOf = ({ url, events, description, active }: Draft) => ({
  url,
  events,
  active,
  description: description === '' ? null : description,
})

/** Converts the headers of the form: removed ones are null. */
export function headersOf({ headers, removed }: Draft): Record<string, string | null> {
  const set = headers
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line => {
      // Without a colon the value is empty, which the API refuses.
      const [name = '', ...value] = line.split(':')
      return [name.trim(), value.join(':').trim()] as const
    })
  return Object.fromEntries([...removed.map(name => [name, null] as const), ...set])
}

/** Renders the fields of an endpoint. Only a new one has the state field; others have a button. */
export async function endpointFields(
  c: Context<Env>,
  { url, events, description, active, headers, removed }: Draft,
  { isNew, headerNames }: { readonly isNew: boolean; readonly headerNames: readonly string[] },
): Promise<Html> {
  const { data } = await c.get('api').ask<EventList>('/v1/webhooks/events')
  const choices = data.events.map(one => ({
    value: one.event,
    label: one.event,
    hint: withCode(one.description),
    checked: events.includes(one.event),
  }))
  return html`
    ${field({
      label: 'URL',
      name: 'url',
      type: 'url',
      value: url,
      required: true,
      placeholder: 'https://app.example.com/hook',
      hint: 'A public HTTPS URL. Each event is sent to it in a POST request.',
    })}
    ${boxes('Events', 'events', choices)}
    ${field({
      label: 'Description',
      name: 'description',
      value: description,
      hint: 'Optional. Shown as the title of the webhook in the dashboard.',
    })}
    ${headerFields(headers, { removed, headerNames })}
    ${isNew ? boxes('State', 'active', [{ ...ON, checked: active }]) : NOTHING}`
}

type CurrentHeaders = Pick<Draft, 'removed'> & { readonly headerNames: readonly string[] }

const headerFields = (headers: string, { removed, headerNames }: CurrentHeaders): Html => html`
  <p class="field">
    <label for="headers">Custom headers</label>
    <textarea id="headers" name="headers" rows="2" spellcheck="false" autocomplete="off" class="mono"
      placeholder="Authorization: Bearer 4f9c21" aria-describedby="headers-hint">${headers}</textarea>
    <small id="headers-hint">Optional. One header on each line, sent with each event. Values are stored encrypted and are
      not shown again. Changing the origin of the URL removes the headers.</small>
  </p>
  ${
    headerNames.length === 0
      ? NOTHING
      : boxes(
          'Remove headers',
          'removed',
          headerNames.map(name => ({ value: name, label: name, checked: removed.includes(name) })),
        )
  }`

/** Form labels by API field. */
export const LABELS = {
  url: 'URL',
  headers: 'Custom headers',
  events: 'Events',
  description: 'Description',
}

/** Renders text between backticks as code. */
export const withCode = (sentence: string): Html =>
  html`${sentence.split('`').map((words, n) => (n % 2 === 0 ? words : html`<code>${words}</code>`))}`

const ON = { value: 'true', label: 'Enabled', hint: 'Send events from now on.' }
