import type { Context } from 'hono'
import type { Metadata, SubmitOptions } from '../../jobs/job-store.ts'
import { checkMetadata } from '../../jobs/metadata.ts'
import { JsonError, parseJsonText } from '../../platform/json-reader.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { EventKind } from '../../webhooks/event-types.ts'
import { type JobWebhook, newJobWebhook } from '../../webhooks/job-webhook.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { invalidRequest } from '../errors/request-errors.ts'
import { withOrigin } from '../request-context.ts'

export type JobOptionDeps = Pick<
  ApiDeps,
  'database' | 'secretBox' | 'clock' | 'random' | 'resolver' | 'settings'
>

/**
 * Reads the `webhook_url` of a job; null if it is omitted. It needs no scope for webhooks: the
 * endpoint gets only events of a job that this key has created.
 */
export async function readJobWebhook(
  c: Context<Env>,
  service: JobOptionDeps,
  url: string | null | undefined,
  events: readonly EventKind[],
): Promise<JobWebhook | null> {
  if (url === undefined || url === null || url === '') return null
  const { id: accountId } = c.get('caller').account
  return newJobWebhook(withOrigin(c, service), { accountId, url, events })
}

/** The endpoint of a job in the response that creates it, the only one with its secret. */
export const presentJobWebhook = ({ webhook }: SubmitOptions) =>
  webhook ? { webhook_id: webhook.id, webhook_secret: webhook.secret } : {}

/** Metadata of a request before its entries are checked. */
export type GivenMetadata = Readonly<Record<string, unknown>> | null | undefined

/** Reads the metadata of a job. Throws ApiError if it is not an object of short strings. */
export function readMetadata(metadata: GivenMetadata): Metadata {
  if (metadata === undefined || metadata === null) return {}
  const checked = checkMetadata(metadata)
  if ('fault' in checked) throw invalidRequest(`"metadata" ${checked.fault}`)
  return checked.metadata
}

/** Metadata is an object of 50 strings; what is larger is refused before it is read. */
const METADATA_LIMITS = {
  depthMax: 4,
  fieldsMax: 1_000,
  valuesMax: 1_000,
  tokenBytesMax: 96 * 1024,
} as const

/** Reads the metadata in a form field, which is JSON. */
export function parseMetadataField(text: string | undefined): GivenMetadata {
  if (text === undefined || text === '') return undefined
  const value = parseMetadata(text)
  if (typeof value === 'object' && !Array.isArray(value)) return value as GivenMetadata
  throw invalidMetadata(sanitizeText(JSON.stringify(value), 60))
}

function parseMetadata(text: string): unknown {
  try {
    return parseJsonText(text, METADATA_LIMITS, { mayRepeatFields: false })
  } catch (error) {
    if (error instanceof JsonError)
      throw invalidMetadata(`not valid JSON: ${sanitizeText(error.message, 60)}`)
    throw error
  }
}

const invalidMetadata = (given: string) =>
  invalidRequest(`"metadata" is ${given}; it must be an object such as {"customer": "42"}.`)
