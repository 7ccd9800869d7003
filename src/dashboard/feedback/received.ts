import type { FeedbackReport } from '../../client/types.ts'
import { PROVIDERS } from '../../feedback/providers/providers.ts'
import { formatNumber } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { card } from '../page/parts.ts'
import { table } from '../page/table.ts'

type Received = FeedbackReport['received']

const SOURCE_NAMES: Readonly<Record<string, string>> = {
  api: 'API',
  import: 'Import',
  ...Object.fromEntries(Object.entries(PROVIDERS).map(([name, { title }]) => [name, title])),
}

/** Rows of received feedback: a week of both sources. */
const DAYS_SHOWN = 14

/** Renders the feedback that was recorded by day; nothing if there is none. */
export const receivedCard = (rows: Received): Html =>
  rows.length === 0
    ? NOTHING
    : card({
        title: 'Received feedback',
        body: table({
          caption: 'Recorded feedback by day, newest first',
          rows: rows.slice(0, DAYS_SHOWN),
          columns: [
            { label: 'Day (UTC)', kind: 'name', cell: ({ date }) => date },
            { label: 'Source', cell: ({ source }) => SOURCE_NAMES[source] ?? source },
            ...(['delivered', 'bounced', 'complained'] as const).map(kind => ({
              label: KIND_NAMES[kind],
              kind: 'number' as const,
              cell: (row: Received[number]) => formatNumber(row[kind]),
            })),
          ],
        }),
      })

const KIND_NAMES = { delivered: 'Delivered', bounced: 'Bounced', complained: 'Complained' } as const
