import type { EvClient } from '../../client/client.ts'
import type {
  CreatedFeedbackSource,
  FeedbackSource,
  NewFeedbackSource,
} from '../../client/types.ts'
import { ownAccount } from '../service.ts'

/** The feedback sources that the commands manage: of a database, or of a service. */
export type SourcesBackend = {
  /** Lists the sources of an account, by ID or name, or of all. */
  list(account: string | undefined): Promise<readonly OwnedSource[]>
  create(input: NewSource, account: string | undefined): Promise<CreatedSource>
  delete(id: string): Promise<void>
}

type NewSource = Pick<NewFeedbackSource, 'provider'> & { readonly key: string | undefined }

export type OwnedSource = FeedbackSource & { readonly account_id: string }

export type CreatedSource = CreatedFeedbackSource['data'] & { readonly account_id: string }

/** Manages the feedback sources of the account of a key. */
export function createRemoteSources(client: EvClient): SourcesBackend {
  const { sources } = client.feedback
  return {
    async list(account) {
      const { id } = await ownAccount(client, account)
      return (await sources.list()).map(source => ({ ...source, account_id: id }))
    },
    async create({ provider, key }, account) {
      const { id } = await ownAccount(client, account)
      const input = { provider, ...(key === undefined ? {} : { key: key.trim() }) }
      return { ...(await sources.create(input)), account_id: id }
    },
    delete: id => sources.delete(id),
  }
}
