"""The columns in which rows travel from Spark to the tasks of all operators."""

# Column names between dispatch and task. Short: they are part of every Arrow batch.
SIDE, HASH, TIME = "s", "h", "t"
# Only where rows are joined by sets: the hashes of a row's items, rising as signed numbers, each
# with the item's weight and with the item itself where these are needed. Where they are joined by
# distance: the hashes of a row's cells, each once. And, on the way to the instances only, the
# hashes under which the row is looked up.
ITEMS, POSTINGS = "e", "q"
# Only where rows are joined by distance, and their coordinates are not doubles: these as doubles.
POINT_X, POINT_Y = "x", "y"
# Only in the state: a bitmap of a row's items.
SIGNATURE = "g"
# Only where points meet subscriptions: the place of a point, or the rectangle around what somebody
# has subscribed to; and where subscriptions come and go, what identifies one (a hash), what becomes
# of it, and the order in which the rows of a batch count.
X, Y, X_MAX, Y_MAX = "x", "y", "u", "v"
BOX = (X, Y, X_MAX, Y_MAX)
IDENTITY, ACTION, ORDER = "n", "a", "o"
# Values of the column of actions: what becomes of a subscription.
ADD, REMOVE, SNAPSHOT, UNKNOWN = range(4)
# Only in the state, where the nearest rows are chosen: the spread value, which settles ties.
ROW_HASH = "r"
# Only in the state, where rows are given that have no match: of a row, that nothing is to be found
# out any more.
DECIDED = "d"
# The fields of an item where it is more than its hash.
ITEM_HASH, ITEM, WEIGHT = "h", "i", "w"
# Only where a task cannot tell by its number which instance it is.
INSTANCE = "i"
# Values of the side column. A replica is a row of this batch that is at home on another instance:
# it meets rows here, but it is not stored and does not ask the state.
LEFT_CODE, RIGHT_CODE, CONTROL_CODE = 0, 1, 2
REPLICA = 3  # added to the code of a side


def key_name(index: int) -> str:
    return f"k{index}"


def slot_name(index: int) -> str:
    return f"p{index}"
