import { EvClient } from '../../client/client.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { type Backend, type ListStatus, ROWS } from './backend.ts'

type ServiceOptions = {
  readonly url: string
  /** The secret of an API key. */
  readonly key: string | undefined
  readonly sandbox: boolean
}

/** Verifies addresses with a service. Throws EvError if the URL or the key is invalid. */
export function createServiceBackend({ url, key, sandbox }: ServiceOptions): Backend {
  if (key === undefined || key === '') {
    throw new EvError('usage', 'Set EV_KEY in the environment to an API key of the service.')
  }
  const client = createClient({ baseUrl: url, apiKey: key, sandbox })
  const getList: Backend['getList'] = async (jobId, { after, limit }, signal) => {
    const [job, page] = await Promise.all([
      client.jobs.get(jobId, { signal }),
      client.jobs.rows(jobId, { after, limit }, { signal }).page(),
    ])
    return {
      ...{ job_id: jobId, status: job.status, classes: job.data.classes },
      ...{ total: job.total_emails, processed: job.processed_emails },
      results: page.items.filter(row => row.class !== null).map(toRow),
      next_after: page.has_more ? after + limit : null,
    }
  }
  return {
    // With steps, an invalid address is a result instead of an error.
    verify: (email, signal) => client.verify.single(email, { onStep: () => {}, signal }),
    async verifyList(emails, signal) {
      const list = await client.bulk(emails, { signal })
      if (!('instant' in list)) return getList(list.job_id, { after: 0, limit: ROWS }, signal)
      const results = list.results.map((item, n) => toRow({ ...item, row: n + 1 }))
      const count = (name: string) => results.filter(row => row.class === name).length
      return {
        ...{ job_id: list.job_id, status: list.status, total: list.total_emails },
        ...{ processed: results.length, results, next_after: null },
        classes: {
          ...{ deliverable: count('deliverable'), risky: count('risky') },
          ...{ undeliverable: count('undeliverable'), unknown: count('unknown') },
        },
      }
    },
    getList,
    close: async () => {},
  }
}

const toRow = ({ row, email, class: kind, risk_level, reason }: ListStatus['results'][number]) => ({
  ...{ row, email, class: kind, risk_level, reason },
})

function createClient(options: ConstructorParameters<typeof EvClient>[0]): EvClient {
  try {
    return new EvClient(options)
  } catch (error) {
    throw new EvError('usage', errorMessage(error), { cause: error })
  }
}
