import { limitByOwner } from '../platform/owner-limit.ts'
import { requestError } from './errors/request-errors.ts'

type ShareOptions = {
  /** How many run at the same time. */
  readonly max: number
  /** How many of them may be of one account. */
  readonly accountMax: number
  /** The limited work, for messages, such as `lists are being downloaded`. */
  readonly what: string
  readonly retryAfterS: number
}

/**
 * Returns a function that admits work of an account, and returns the function that ends it, which
 * may be called twice. Throws ApiError if too much is in progress.
 */
export const limitByAccount = ({ max, accountMax, what, retryAfterS }: ShareOptions) =>
  limitByOwner({
    ownerMax: accountMax,
    refuseOwner: count => requestError('account_share_exceeded', { count, what, retryAfterS }),
    overall: {
      max,
      refuse: count => requestError('share_exceeded', { count, what, retryAfterS }),
    },
  })
