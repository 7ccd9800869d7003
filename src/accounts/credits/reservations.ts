/** Credits that are reserved for verifications in flight. */
export type Reservation = {
  /** Start of the credit period in which it was made, epoch ms, however late it is settled. */
  readonly period: number
  /** 0 if the plan has no limit: no reservation is needed then. */
  readonly amount: number
  /**
   * The cluster member that holds it; it is released when the member expires. Omitted outside a
   * cluster.
   */
  readonly member?: string
}

/** The reservations that this process has made and not settled, by account, period and member. */
export class ReservationsInFlight {
  readonly #amounts = new Map<string, number>()

  add(accountId: string, reservation: Reservation): void {
    this.#change(accountId, reservation, reservation.amount)
  }

  remove(accountId: string, reservation: Reservation): void {
    this.#change(accountId, reservation, -reservation.amount)
  }

  /** Returns the credits that an account has reserved; `member` is null outside a cluster. */
  amount(accountId: string, period: number, member: string | null): number {
    return this.#amounts.get(toKey(accountId, period, member)) ?? 0
  }

  #change(accountId: string, { period, member }: Reservation, by: number) {
    const key = toKey(accountId, period, member ?? null)
    const amount = (this.#amounts.get(key) ?? 0) + by
    if (amount > 0) this.#amounts.set(key, amount)
    else this.#amounts.delete(key)
  }
}

const toKey = (accountId: string, period: number, member: string | null) =>
  JSON.stringify([accountId, period, member])
