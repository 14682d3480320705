int stowage_planner_placeholder();
