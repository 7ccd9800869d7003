import { z } from '@hono/zod-openapi'
import { ACTIONS } from '../../engine/verdict/action.ts'
import { CLASSES } from '../../engine/verdict/reason.ts'
import { createDownloadUrl } from '../../jobs/download-url.ts'
import { DEDUPLICATE_BY } from '../../jobs/import/import-counter.ts'
import { isoTime } from '../../platform/format.ts'
import type { ApiDeps } from '../api-deps.ts'
import { requestError } from '../errors/request-errors.ts'
import { commitResponse, type IdempotencyDeps } from '../middleware/idempotency.ts'
import { withOrigin } from '../request-context.ts'
import { newRouter, route } from '../route.ts'
import { json, successBody } from '../schemas/answers.ts'
import { time } from '../schemas/fields.ts'
import { checkVocabulary, DEDUPLICATE, FORMATS, VocabularySchema } from './download.ts'
import { jobParams, type LoadJobDeps, loadJob } from './load-job.ts'

export type DownloadLinkDeps = Pick<ApiDeps, 'guard' | 'random' | 'settings'> &
  IdempotencyDeps &
  LoadJobDeps

const DownloadLinkRequest = z
  .strictObject({
    format: z.enum(FORMATS).default('csv').openapi({ description: 'File format.', example: 'csv' }),
    filter: z
      .array(z.enum(CLASSES))
      .min(1)
      .max(CLASSES.length)
      .optional()
      .openapi({ description: 'Only rows of these classes.', example: ['deliverable'] }),
    action: z
      .array(z.enum(ACTIONS))
      .min(1)
      .max(ACTIONS.length)
      .optional()
      .openapi({ description: 'Only rows with these actions.', example: ['send'] }),
    raw: z.boolean().optional().openapi({
      description: 'Set to true to leave cells unchanged, as in the download.',
      example: false,
    }),
    deduplicate: z
      .union([z.boolean(), z.enum(DEDUPLICATE_BY)])
      .optional()
      .openapi({ description: DEDUPLICATE, example: true }),
    vocabulary: VocabularySchema.optional(),
    partial: z.boolean().optional().openapi({
      description: "Set to true to get the results so far of a job that isn't completed.",
      example: false,
    }),
  })
  .openapi('DownloadLinkRequest')

const DownloadLink = successBody(
  z.object({
    url: z.string().openapi({
      description: 'The URL. Requires no API key.',
      example:
        'https://api.example.com/v1/jobs/job_xyz789/download?format=csv&key_id=key_01&expires=1774175400&signature=6b8f…',
    }),
    expires_at: time.openapi({ example: '2026-03-22T10:30:00.000Z' }),
  }),
).openapi('DownloadLink')

/** Route that creates a link to the results which needs no key. */
export function downloadLinkRoutes(service: DownloadLinkDeps) {
  const create = route(service, 'POST /v1/jobs/{id}/download_url', {
    id: 'createDownloadUrl',
    summary: 'Create a download URL that needs no API key',
    description:
      'Returns a URL that works for 24 hours, for anyone who has it, and for this file only. It stops working earlier if the job is deleted, or if the API key that created it is revoked, rotated or expires. The allowed addresses, allowed domains and rate limit of that key apply to the URL too.',
    scope: 'jobs:read',
    idempotent: true,
    params: jobParams,
    body: {
      schema: DownloadLinkRequest,
      example: { format: 'csv', filter: ['deliverable'] },
      max: BODY_MAX,
      required: false,
    },
    answer: json(DownloadLink, 'The URL'),
    errors: ['job_not_ready'],
  })
  return newRouter().handle(create, async c => {
    const job = await loadJob(c, service, c.req.valid('param').id)
    const { partial, ...file } = c.req.valid('json')
    checkVocabulary(file)
    if (job.state !== 'completed' && !partial) {
      const partial = 'Set "partial" to true'
      throw requestError('results_incomplete', { state: job.state, partial })
    }
    const { key, secretExpiresAt } = c.get('caller')
    const services = { ...withOrigin(c, service), baseUrl: service.settings.baseUrl }
    return commitResponse(c, service, async trx => {
      const input = { job, key, secretExpiresAt, partial, ...file }
      const { url, expiresAt } = await createDownloadUrl(trx, services, input)
      const data = { url, expires_at: isoTime(expiresAt) }
      return { status: 200, body: { success: true, data } }
    })
  })
}

/** A small object. */
const BODY_MAX = 4 * 1024
