import type { Context } from 'hono'
import { html } from 'hono/html'
import type { EventList } from '../../client/types.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { card } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { codeBlock } from '../page/text.ts'
import { withCode } from './endpoint-form.ts'

type EventType = EventList['data']['events'][number]

/** Lists the event types with their fields and an example of each. */
export async function eventTypesPage(c: Context<Env>): Promise<Response> {
  const { data } = await c.get('api').ask<EventList>('/v1/webhooks/events')
  return page(c, {
    title: 'Event types',
    back: { href: '/webhooks', label: 'Webhooks' },
    intro:
      'The body of each event is JSON. To try one, send its example from the page of a webhook.',
    body: data.events.map(eventType),
  })
}

const eventType = ({ event, description, schema, example }: EventType): Html =>
  card({
    title: event,
    id: event,
    body: html`
      <p>${withCode(description)}</p>
      ${codeBlock(JSON.stringify(example, null, 2))}
      <details><summary>Fields of <code>data</code></summary>${fieldsTable(event, schema)}</details>`,
  })

/** The part of a JSON Schema that the page shows. */
type Property = {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly string[]
  readonly anyOf?: readonly Property[]
}

const fieldsTable = (event: string, { properties }: EventType['schema']): Html =>
  table({
    caption: `Fields of ${event}`,
    columns: [
      { label: 'Field', kind: 'name', cell: ([name]) => html`<code>${name}</code>` },
      { label: 'Type', cell: ([, property]) => typeOf(property) },
      {
        label: 'Description',
        kind: 'wide',
        cell: ([, { description }]) =>
          description === undefined ? NOTHING : withCode(description),
      },
    ],
    rows: Object.entries((properties ?? {}) as Readonly<Record<string, Property>>),
  })

const typeOf = ({ type, anyOf }: Property): string =>
  type === undefined ? (anyOf ?? []).map(typeOf).join(' or ') : [type].flat().join(' or ')
