import { parseCheckTime } from '../../formats/vocabulary/read-external.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { SourceFlags } from './list-source.ts'

/** Parses `--external-date` as epoch ms; null if it is not given. Throws EvError('usage'). */
export function parseExternalDate(value: string | undefined): number | null {
  if (value === undefined) return null
  const time = parseCheckTime(value)
  if (time !== null) return time
  throw new EvError(
    'usage',
    `--external-date is "${sanitizeText(value, 40)}"; it takes a date such as 2026-03-01 or 2026-03-01T14:30:00Z.`,
  )
}

/** Throws EvError('usage') for a date without `--keep-external`, or of another form. */
export function checkExternalDate({
  keepExternal,
  externalDate,
}: Pick<SourceFlags, 'keepExternal' | 'externalDate'>): void {
  parseExternalDate(externalDate)
  if (externalDate === undefined || keepExternal) return
  throw new EvError(
    'usage',
    '--external-date tells the age of results that are kept, so it needs --keep-external. Add it, or omit --external-date.',
  )
}
