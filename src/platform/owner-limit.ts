type OwnerLimit = {
  /** How much of one owner may be in progress at the same time. */
  readonly ownerMax: number
  /** Creates the error that is thrown if it is reached. */
  readonly refuseOwner: (count: number) => Error
  /** The same for all owners together. No limit if omitted. */
  readonly overall?: { readonly max: number; readonly refuse: (count: number) => Error }
}

/**
 * Returns a function that admits work of an owner, and returns the function that ends it, which may
 * be called twice.
 */
export function limitByOwner({
  ownerMax,
  refuseOwner,
  overall,
}: OwnerLimit): (owner: string) => () => void {
  let inProgress = 0
  const byOwner = new Map<string, number>()
  return owner => {
    const own = byOwner.get(owner) ?? 0
    if (own >= ownerMax) throw refuseOwner(own)
    if (overall !== undefined && inProgress >= overall.max) throw overall.refuse(inProgress)
    inProgress++
    byOwner.set(owner, own + 1)
    let isDone = false
    return () => {
      if (isDone) return
      isDone = true
      inProgress--
      const left = (byOwner.get(owner) ?? 1) - 1
      if (left === 0) byOwner.delete(owner)
      else byOwner.set(owner, left)
    }
  }
}
