/** Addresses that wait, counted by operator and list: a thousand million rows would not fit. */
export class Shelf {
  readonly #waiting = new Map<string, Map<string, number>>()
  /** The list after which an operator's next connection begins, as the worker has it. */
  readonly #turns = new Map<string, string>()

  put(operator: string, list: string): void {
    const lists = this.#waiting.get(operator) ?? new Map<string, number>()
    lists.set(list, (lists.get(list) ?? 0) + 1)
    this.#waiting.set(operator, lists)
  }

  has(operator: string): boolean {
    return this.#waiting.has(operator)
  }

  /** Up to `max`, from all lists in turn: each gives its share, and what is left over comes from those with more. */
  take(operator: string, max: number): { list: string; count: number }[] {
    const lists = this.#waiting.get(operator)
    if (lists === undefined) return []
    const taken = new Map<string, number>()
    let left = max
    let served = this.#inTurn(operator, [...lists.keys()], max)
    while (served.length > 0 && left > 0) {
      const share = Math.max(1, Math.floor(left / served.length))
      const withMore: string[] = []
      for (const list of served) {
        const has = lists.get(list) ?? 0
        const count = Math.min(share, left, has)
        if (count === 0) continue
        left -= count
        taken.set(list, (taken.get(list) ?? 0) + count)
        if (has === count) lists.delete(list)
        else lists.set(list, has - count)
        if (count === share && has > count) withMore.push(list)
      }
      served = withMore
    }
    if (lists.size === 0) this.#waiting.delete(operator)
    return [...taken].map(([list, count]) => ({ list, count }))
  }

  #inTurn(operator: string, lists: string[], max: number): string[] {
    if (lists.length < 2) return lists
    const last = this.#turns.get(operator) ?? ''
    const at = Math.max(
      0,
      lists.findIndex(id => id > last),
    )
    const served = [...lists.slice(at), ...lists.slice(0, at)].slice(0, max)
    const begun = served.length === lists.length ? served[0] : served.at(-1)
    this.#turns.set(operator, begun ?? '')
    return served
  }
}
