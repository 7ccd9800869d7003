import { Option } from 'commander'
import type { Metadata } from '../jobs/job-store.ts'
import { checkMetadata } from '../jobs/metadata.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/** `--metadata`, which may be repeated. */
export const metadataOption = (help: string) =>
  new Option('--metadata <key=value>', `${help}; repeat it for several`).argParser(
    (value: string, previous: readonly string[] = []) => [...previous, value],
  )

/** Parses the values of `--metadata`. Throws EvError('usage'). */
export function parseMetadataFlags(values: readonly string[] = []): Metadata {
  const pairs = values.map(value => {
    const equals = value.indexOf('=')
    if (equals > 0) return [value.slice(0, equals), value.slice(equals + 1)] as const
    throw invalid(`is "${sanitizeText(value)}"; give a key and a value, as in "customer=42".`)
  })
  const repeated = pairs.find(([key], n) => pairs.findIndex(([other]) => other === key) < n)
  if (repeated !== undefined) {
    throw invalid(`has the key "${sanitizeText(repeated[0])}" twice; give each key once.`)
  }
  const checked = checkMetadata(Object.fromEntries(pairs))
  if ('fault' in checked) throw invalid(checked.fault)
  return checked.metadata
}

const invalid = (fault: string) => new EvError('usage', `--metadata ${fault}`)
