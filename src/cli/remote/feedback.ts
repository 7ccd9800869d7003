import type { EvClient } from '../../client/client.ts'
import type { FeedbackItem, FeedbackReport, RecordedFeedback } from '../../client/types.ts'
import type { LearnedReplySum } from '../../cluster/learned-replies.ts'
import { type FeedbackInput, isEnhancedCode } from '../../feedback/feedback.ts'
import { isoTime } from '../../platform/format.ts'
import { ownAccount } from '../service.ts'

/** The feedback that the commands import and compare: of a database, or of a service. */
export type FeedbackBackend = {
  /** Starts an import for an account, by ID or name. */
  startImport(account: string | undefined): Promise<FeedbackImport>
  report(account: string | undefined): Promise<Report>
}

type FeedbackImport = {
  /** Records at least one item. An item that was recorded before is not counted again. */
  record(items: readonly FeedbackInput[]): Promise<Recorded>
  close(): Promise<void>
}

type Recorded = Pick<RecordedFeedback, 'recorded' | 'duplicates'> & {
  readonly rejected: readonly { readonly error: string }[]
}

/** A service keeps what it knows of all accounts to itself. */
export type Report = FeedbackReport & {
  readonly contradicted_replies?: readonly ContradictedReply[]
  readonly learned_replies?: readonly LearnedReplySum[]
}

type ContradictedReply = {
  readonly operator: string | null
  readonly said: string
  readonly count: number
  readonly contradicted: number
  /** Lower end of the 95% interval of the contradicted share, 0 to 1. */
  readonly share_min: number
  readonly accounts: number
  readonly reply: string
  readonly meaning: string
}

/** Imports feedback to the account of a key. */
export function createRemoteFeedback(client: EvClient): FeedbackBackend {
  return {
    async startImport(account) {
      if (account !== undefined) await ownAccount(client, account)
      return {
        record: items => client.feedback.submit(items.map(toItem)),
        close: async () => {},
      }
    },
    async report(account) {
      if (account !== undefined) await ownAccount(client, account)
      return client.feedback.report()
    },
  }
}

/** Limits of the API: an item beyond them would refuse the whole request. */
const EMAIL_MAX = 1_000
const TEXT_MAX = 10_000
const ID_MAX = 255

/** Converts feedback to an item of the API, without the parts that ev would ignore. */
function toItem({ address, kind, ...input }: FeedbackInput): FeedbackItem {
  const { code, enhancedCode, text, occurredAt, id, isPermanent } = input
  const hasCode = code != null && Number.isInteger(code) && code >= 200 && code <= 599
  return {
    email: address.slice(0, EMAIL_MAX),
    kind,
    ...(hasCode ? { code } : {}),
    ...(enhancedCode != null && isEnhancedCode(enhancedCode)
      ? { enhanced_code: enhancedCode }
      : {}),
    ...(text == null ? {} : { text: text.slice(0, TEXT_MAX) }),
    ...(occurredAt === null ? {} : { occurred_at: isoTime(occurredAt) }),
    ...(isPermanent == null ? {} : { permanent: isPermanent }),
    ...(id != null && id !== '' && id.length <= ID_MAX ? { id } : {}),
  }
}
