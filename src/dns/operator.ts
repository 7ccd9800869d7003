/** Who runs the mail of a domain, known by the names of its exchangers. */
export type Operator = {
  /** Identifier: a name of the table such as `google`, else the registrable domain of the exchanger. */
  readonly name: string
  /** Name for people: `Google`. */
  readonly title: string
  /** What a 2xx to RCPT is worth: `tells` it knows its mailboxes; `accepts-all` it takes everything; `tenant` as each customer set it; `gateway` a filter in front of the customer's server. */
  readonly truth: 'tells' | 'accepts-all' | 'tenant' | 'gateway'
}

export declare function operatorOf(host: string): Operator
