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
export function limitByAccount({
  max,
  accountMax,
  what,
  retryAfterS,
}: ShareOptions): (accountId: string) => () => void {
  let inProgress = 0
  const byAccount = new Map<string, number>()
  return accountId => {
    const own = byAccount.get(accountId) ?? 0
    if (own >= accountMax) {
      throw requestError('account_share_exceeded', { count: own, what, retryAfterS })
    }
    if (inProgress >= max) {
      throw requestError('share_exceeded', { count: inProgress, what, retryAfterS })
    }
    inProgress++
    byAccount.set(accountId, own + 1)
    let isDone = false
    return () => {
      if (isDone) return
      isDone = true
      inProgress--
      const left = (byAccount.get(accountId) ?? 1) - 1
      if (left === 0) byAccount.delete(accountId)
      else byAccount.set(accountId, left)
    }
  }
}
