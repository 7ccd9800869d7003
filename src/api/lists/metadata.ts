import type { Metadata } from '../../jobs/job-store.ts'
import { checkMetadata } from '../../jobs/metadata.ts'
import { sanitizeText } from '../../platform/text.ts'
import { ApiError } from '../errors/api-error.ts'

/** Reads the metadata of a job. Throws ApiError if it is not an object of short strings. */
export function readMetadata(metadata: unknown): Metadata {
  if (metadata === undefined || metadata === null) return {}
  if (typeof metadata !== 'object' || Array.isArray(metadata)) throw notAnObject(metadata)
  const checked = checkMetadata(metadata as Record<string, unknown>)
  if ('fault' in checked) throw invalid(`"metadata" ${checked.fault}`)
  return checked.metadata
}

/** Reads the metadata in a form field, which is JSON. */
export function parseMetadataField(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw notAnObject(text)
  }
}

const notAnObject = (value: unknown) =>
  invalid(
    `"metadata" is ${sanitizeText(JSON.stringify(value), 60)}; it must be an object such as {"customer": "42"}.`,
  )

const invalid = (message: string) => new ApiError('invalid_request', message)
