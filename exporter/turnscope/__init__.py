"""turnscope: what did each agent turn recompute, fetch back, and wait for?"""
